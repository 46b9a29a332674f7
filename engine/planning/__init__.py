"""Plans by prediction: a judge that plays a method's own program, and one search for the fastest plan."""
