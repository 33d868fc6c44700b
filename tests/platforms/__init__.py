"""Tests that start a cluster or a server of their own: make test-cluster, make test-s3."""
