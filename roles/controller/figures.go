package controller

import "grl/web/page"

// Cells returns a row for each cell, and one for each bucket that nobody calls.
func (v view) Cells() []page.Cell { return v.sight().cells }

// Total returns what the fleet is offered now.
func (v view) Total() page.Load { return v.sight().total }
