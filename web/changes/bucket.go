package changes

import (
	"strings"

	"grl/limiter"
	"grl/limiter/limitsfile"
	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
)

// parsed reads the text of one bucket, as the audit and outcomes have it; nil: it
// is none, or was cut.
func parsed(bucket, text string) *limiter.Bucket {
	service, _, ok := strings.Cut(bucket, "/")
	if text == "" || !ok {
		return nil
	}
	var file strings.Builder
	file.Write(limitsfile.Normalize(limiter.Service{Name: service}))
	file.WriteString("buckets:\n")
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		indent := "    "
		if i == 0 {
			indent = "  - "
		}
		file.WriteString(indent + line + "\n")
	}
	f, err := limitsfile.Parse("audit", []byte(file.String()))
	if err != nil || len(f.Service.Buckets) != 1 {
		return nil
	}
	return &f.Service.Buckets[0]
}

// itemText returns what the text of an entry says of one bucket; "": nothing.
func itemText(text, bucket string) string {
	_, rest, found := strings.Cut("\n"+text, "\n# "+bucket+"\n")
	if !found {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "\n# ")
	return rest
}

// changed is a value before and after.
type changed struct{ What, Old, New string }

// changesOf says what became of a bucket, the weightiest first. Either may be nil:
// it was not there.
func changesOf(was, is *limiter.Bucket) []changed {
	switch {
	case was == nil && is == nil:
		return nil
	case was == nil:
		return []changed{{"limit", "none", limitText(is)}}
	case is == nil:
		return []changed{{"limit", limitText(was), "removed"}}
	}
	var all []changed
	add := func(what, old, now string) {
		if old != now {
			all = append(all, changed{what, old, now})
		}
	}
	add("behavior", was.Behavior.String(), is.Behavior.String())
	add("limit", limitText(was), limitText(is))
	add("candidate", candidateText(was), candidateText(is))
	if len(all) == 0 && limitsfile.BucketText(was) != limitsfile.BucketText(is) {
		all = append(all, changed{What: "settings"})
	}
	return all
}

func limitText(b *limiter.Bucket) string {
	switch {
	case b.Block:
		return "block"
	case b.HasHours():
		return "up to " + format.RPS(b.LimitRPS) + " by the hour"
	}
	return format.RPS(b.LimitRPS)
}

func candidateText(b *limiter.Bucket) string {
	if b.CandidateRPS == 0 {
		return "none"
	}
	return format.RPS(b.CandidateRPS)
}

// changesBehavior reports whether an entry turns enforcement of a bucket on or off.
// It reads no more of the texts than that: thousands are looked through.
func changesBehavior(e *grlv1.AuditEntry) bool {
	for _, bucket := range e.GetSubjects() {
		was, is := behaviorOf(itemText(e.GetBefore(), bucket)), behaviorOf(itemText(e.GetAfter(), bucket))
		if was != "" && is != "" && was != is {
			return true
		}
	}
	return false
}

// behaviorOf returns the line of a bucket's text that has its behavior, "" if none
// does.
func behaviorOf(text string) string {
	_, rest, found := strings.Cut("\n"+text, "\nbehavior: ")
	if !found {
		return ""
	}
	behavior, _, _ := strings.Cut(rest, "\n")
	return behavior
}
