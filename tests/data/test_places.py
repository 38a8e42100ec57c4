"""Coordinates as input columns: planes, degrees that wrap, spheres, and polygons."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from rwf.data.places import EARTH, Places, bounds_of, inside, near, suggested_geometry


def places(geometry, bounds=(0.0, 40.0, 10.0, 50.0), **others):
    return Places("lon", "lat", geometry, np.array(bounds), **others)


def test_a_plane_keeps_coordinates_and_appends_the_others():
    x, y, t = np.arange(3.0), np.arange(3.0) + 5, np.ones(3)
    p = places("plane", time="time")
    assert_array_equal(p.columns(x, y, t), np.column_stack([x, y, t]))
    assert p.names == ("lon", "lat", "time")


@given(st.floats(-720, 720), st.floats(-180, 180))
def test_longitudes_wrap_to_within_half_a_turn_of_the_center(longitude, center):
    found = near(np.array([longitude]), center)[0]
    assert abs(found - center) <= 180 + 1e-9
    assert_allclose(np.exp(1j * np.radians(found)), np.exp(1j * np.radians(longitude)), atol=1e-9)


@pytest.mark.parametrize("geometry", ["degrees", "sphere"])
def test_a_turn_more_is_the_same_place(geometry):
    p, x, y = places(geometry), np.array([3.0, 9.0]), np.array([41.0, 49.0])
    assert_allclose(p.columns(x + 360, y), p.columns(x, y), atol=1e-9)
    assert_allclose(p.columns(x - 360, y), p.columns(x, y), atol=1e-9)


def test_degrees_are_shrunk_by_the_cosine_of_the_middle():
    p = places("degrees")
    a, b = p.columns(np.array([1.0, 2.0]), np.array([45.0, 45.0]))
    assert_allclose(b - a, [np.cos(np.pi / 4), 0.0], atol=1e-12)


def test_distances_on_a_sphere_are_chords():
    p = places("sphere")
    a, b = p.columns(np.array([0.0, 90.0]), np.array([0.0, 0.0]))
    assert_allclose(np.linalg.norm(a - b), EARTH * np.sqrt(2))
    pole = p.columns(np.array([0.0, 123.0]), np.array([90.0, 90.0]))
    assert_allclose(pole[0], pole[1], atol=1e-9)
    assert p.names == ("x_km", "y_km", "z_km")


@pytest.mark.parametrize("shift", [0.0, 177.0, 355.0, -90.0])
def test_bounds_are_those_of_the_shortest_arc(shift):
    x, y = np.array([350.0, 355.0, 2.0, 10.0]) + shift, np.array([1.0, 2.0, 3.0, 4.0])
    low, _, high, _ = bounds_of(x, y, degrees=True)
    assert_allclose(high - low, 20.0)
    assert_allclose((low - (350 + shift)) % 360, 0.0, atol=1e-9)
    assert -180 <= (low + high) / 2 <= 180
    assert_array_equal(bounds_of(x, y, degrees=False), [x.min(), 1.0, x.max(), 4.0])


@pytest.mark.parametrize(
    "bounds, geometry",
    [((0, 40, 10, 50), "degrees"), ((0, 40, 10, 65), "sphere"), ((-170, -10, 170, 10), "sphere")],
)
def test_wide_maps_and_those_near_a_pole_are_on_a_sphere(bounds, geometry):
    assert suggested_geometry(np.array(bounds, float), degrees=True) == geometry
    assert suggested_geometry(np.array(bounds, float), degrees=False) == "plane"


def test_the_metric_is_said_in_words():
    assert "lon and lat as a plane" in places("plane").metric
    assert "5° E, 45° N" in places("degrees").metric
    assert "0.707" in places("degrees").metric
    assert "chord" in places("sphere").metric


def test_a_polygon_contains_what_is_inside_it():
    corners = np.array([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)], float)  # with a notch
    x, y = np.array([1.0, 2.0, 2.0, 3.5, 5.0]), np.array([1.0, 3.0, 0.5, 3.0, 1.0])
    assert_array_equal(inside(x, y, corners), [True, False, True, True, False])
