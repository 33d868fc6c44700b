"""Resolve messages by the million on Spark: conform, key, look up, resolve; no more than keys are collected."""
