"""Export the views of running servers by Microsoft's driver, as `sbroute import queries` does with sqlcmd."""
