"""What a graph and its search take, before there is one."""
