"""What a model and its rows tell: dependence of columns, wrong labels, what to label next."""
