"""The commands as click knows them: options and help, without what runs them."""
