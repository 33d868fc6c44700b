"""Tests that start a cluster, a server or a browser: make test-cluster, test-s3, test-browser."""
