package web

// Routes are all pages and forms, for tests from outside.
var Routes = routes
