package bucket

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"grl/web/chart"
	"grl/web/format"
	"grl/web/page"
)

// zoomView is the chart alone, to look into.
type zoomView struct {
	Title, Bucket string
	Back          string
	Ranges        []tab
	Plot          chart.Plot
	Data          string // the address of the numbers; "": the script is not built in
	CSV           string
	Each          bool
}

func (s site) serveZoom(w http.ResponseWriter, r *http.Request) {
	q := readQuery(r.URL.Query())
	seen := s.cells(q)
	if len(seen.cells) == 0 {
		s.missing(w, r, q, nil)
		return
	}
	chart, err := s.chartView(r.Context(), q)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v := zoomView{
		Title: format.Printable(q.bucket()), Bucket: q.bucket(), Back: q.path(""), Plot: chart.Plot, CSV: q.path("/series.csv"), Each: chart.Each,
	}
	for _, span := range spans {
		v.Ranges = append(v.Ranges, tab{span.name, q.over(span).path("/zoom"), span == q.Range})
	}
	p := s.page(r, q, &seen)
	p.Crumbs[len(p.Crumbs)-1].Path = q.path("")
	p.Crumbs = append(p.Crumbs, page.Crumb{Name: "Zoom"})
	if s.Assets.Plot != "" && s.Assets.Zoom != "" {
		v.Data = q.path("/series.json")
		p.Scripts, p.Styles = []string{s.Assets.Plot, s.Assets.Zoom}, []string{s.Assets.PlotStyle}
	}
	s.Render(w, r, http.StatusOK, showZoom(p, v))
}

// numbers are the lines of a chart for a script: a value for each time, null
// where nothing is known.
type numbers struct {
	Bucket      string     `json:"bucket"`
	StepSeconds float64    `json:"step_seconds"`
	Times       []int64    `json:"times"` // Unix seconds
	Lines       []numberOf `json:"lines"`
}

type numberOf struct {
	Name   string     `json:"name"`
	Unit   string     `json:"unit"`
	Values []*float64 `json:"values"`
}

// lineNames name the lines, as charts do.
var lineNames = map[chart.Kind]string{
	chart.Offered: "offered", chart.Admitted: "admitted", chart.Limit: "limit", chart.Candidate: "candidate",
	chart.DropRatio: "drop ratio", chart.Virtual: "virtual",
}

func numbersOf(bucket string, p *chart.Plot) numbers {
	out := numbers{Bucket: bucket, StepSeconds: p.Step.Seconds(), Times: make([]int64, p.Steps)}
	for i := range out.Times {
		out.Times[i] = p.From.Add(time.Duration(i) * p.Step).Unix()
	}
	for _, strip := range p.Strips {
		for _, l := range strip.Lines {
			line := numberOf{Name: lineNames[l.Kind], Unit: strip.Unit, Values: make([]*float64, p.Steps)}
			for i := range min(len(l.Values), p.Steps) {
				if v := l.Values[i]; !math.IsNaN(v) && !math.IsInf(v, 0) {
					line.Values[i] = &l.Values[i]
				}
			}
			out.Lines = append(out.Lines, line)
		}
	}
	return out
}

// plot reads the numbers of a chart, or answers why not.
func (s site) plot(w http.ResponseWriter, r *http.Request) (query, numbers, bool) {
	q := readQuery(r.URL.Query())
	if len(s.cells(q).cells) == 0 {
		http.Error(w, "There is no such bucket.", http.StatusNotFound)
		return q, numbers{}, false
	}
	v, err := s.chartView(r.Context(), q)
	if err != nil {
		s.Fail(w, r, err)
		return q, numbers{}, false
	}
	return q, numbersOf(q.bucket(), &v.Plot), true
}

func (s site) serveJSON(w http.ResponseWriter, r *http.Request) {
	_, n, ok := s.plot(w, r)
	if !ok {
		return
	}
	body, err := json.Marshal(n)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // the reader went away; there is no one to tell
}

func (s site) serveCSV(w http.ResponseWriter, r *http.Request) {
	q, n, ok := s.plot(w, r)
	if !ok {
		return
	}
	var b strings.Builder
	out := csv.NewWriter(&b)
	head := []string{"time"}
	for _, l := range n.Lines {
		unit := "rps"
		if l.Unit == "%" {
			unit = "percent"
		}
		head = append(head, strings.ReplaceAll(l.Name, " ", "_")+"_"+unit)
	}
	_ = out.Write(head) // to memory
	for i, at := range n.Times {
		row := []string{time.Unix(at, 0).UTC().Format(time.RFC3339)}
		for _, l := range n.Lines {
			cell := ""
			if l.Values[i] != nil {
				cell = strconv.FormatFloat(*l.Values[i], 'g', 6, 64)
			}
			row = append(row, cell)
		}
		_ = out.Write(row)
	}
	out.Flush()
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+fileName(q.bucket()+" "+q.Range.value)+`.csv"`)
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(b.String()))
}

// fileName is a name with only what a file may be called.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '-'
	}, name)
	return name[:min(len(name), 100)]
}
