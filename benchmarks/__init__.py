"""Speed, as ratios within one run: machines are noisy, ratios to their own BLAS less so."""
