// Package bucket has the page of one bucket, and the forms that change it.
package bucket

import (
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
)

// site serves the pages. It may be used concurrently.
type site struct {
	*page.Site
	lines    *lines
	services *services
}

// Routes returns the pages of a bucket and their forms.
func Routes(p *page.Site) []page.Route {
	s := site{Site: p, lines: newLines(), services: newServices()}
	look, read := grlv1connect.ViewServiceListBucketsProcedure, grlv1connect.ViewServiceGetHistoryProcedure
	apply := grlv1connect.ConfigServiceApplyProcedure
	return []page.Route{
		{Pattern: "GET /bucket", Procedure: look, Serve: s.serve},
		{Pattern: "GET /bucket/now", Procedure: look, Serve: s.region(s.now)},
		{Pattern: "GET /bucket/chart", Procedure: read, Serve: s.region(s.chart)},
		{Pattern: "GET /bucket/callers", Procedure: look, Serve: s.region(s.callers)},
		{Pattern: "GET /bucket/zones", Procedure: look, Serve: s.region(s.zones)},
		{Pattern: "GET /bucket/saved", Procedure: look, Serve: s.region(s.saved)},
		{Pattern: "GET /bucket/zoom", Procedure: read, Serve: s.serveZoom},
		{Pattern: "GET /bucket/series.json", Procedure: read, Serve: s.serveJSON},
		{Pattern: "GET /bucket/series.csv", Procedure: read, Serve: s.serveCSV},
		{Pattern: "GET /bucket/preview", Procedure: apply, Serve: s.preview},
		{Pattern: "POST /bucket", Procedure: apply, Serve: s.save},
		{Pattern: "POST /bucket/effect", Procedure: apply, Serve: s.effect},
		{Pattern: "POST /bucket/promote", Procedure: grlv1connect.ConfigServicePromoteProcedure, Serve: s.promote},
		{Pattern: "POST /bucket/rollback", Procedure: grlv1connect.ConfigServiceRollbackProcedure, Serve: s.rollback},
		{Pattern: "GET /bucket/new", Procedure: apply, Serve: s.serveNew},
		{Pattern: "GET /bucket/new/preview", Procedure: apply, Serve: s.previewNew},
		{Pattern: "POST /bucket/new", Procedure: apply, Serve: s.create},
		{Pattern: "POST /bucket/new/effect", Procedure: apply, Serve: s.effectOfNew},
	}
}
