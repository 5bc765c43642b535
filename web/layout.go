package web

// link is an entry of the navigation.
type link struct{ Group, Name, Path, Icon string }

// links are the pages there are, grouped by job.
var links = []link{
	{"Watch", "Overview", "/", "overview"},
	{"Watch", "Buckets", "/buckets", "buckets"},
	{"Operate", "Fleet", "/fleet", "fleet"},
}

// htmxConfig sets htmx up for a strict policy: requests go to this origin
// only, no style is injected, history stays with the browser, and an answer
// that is no page (4xx, 5xx) is not swapped in. A poll that takes longer than
// 5 s is given up, so that the next one can be sent.
const htmxConfig = `{"mode":"same-origin","includeIndicatorCSS":false,"history":false,` +
	`"noSwap":[204,304,"3xx","4xx","5xx"],"defaultTimeout":5000}`
