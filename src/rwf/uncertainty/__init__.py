"""What variances need beyond the posterior: noise by place, calibration, gaps, neighbours."""
