"""Tests that start a cluster, a server or a browser of their own: make test-cluster, test-s3, test-browser."""
