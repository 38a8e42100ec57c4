"""Maps: from rasters and points of xarray to rasters of means, deviations and draws."""

from rwf.integrations.maps.draws import mean_over, sample_map
from rwf.integrations.maps.files import open_map, write_map
from rwf.integrations.maps.fit import MapModel, fit_map
from rwf.integrations.maps.predict import grid, plot_map, predict_map

__all__ = [
    "MapModel",
    "fit_map",
    "grid",
    "mean_over",
    "open_map",
    "plot_map",
    "predict_map",
    "sample_map",
    "write_map",
]
