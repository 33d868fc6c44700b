"""Resolve millions of messages on Spark. Only their keys are collected."""
