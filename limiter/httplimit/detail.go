package httplimit

import (
	"strings"

	"grl/limiter"
)

// maxReason bounds what a refusal quotes of a cap's reason: it stands in
// headers, up to three times as long, and proxies have room for little.
const maxReason = 256

// detail says in words why d was dropped. A drop without a bucket, which only a
// zero Drop has, is of the bucket "".
func detail(d Drop) string {
	b := d.Bucket
	if b == nil {
		b = &limiter.Bucket{}
	}
	if b.Cap != nil {
		return capDetail(b)
	}
	text := "bucket " + b.FullName()
	if d.Service != nil && d.Service.Owner != "" {
		text += " of " + d.Service.Owner
	}
	if b.Block {
		return text + " is blocked"
	}
	return text + " is over its limit" + classDetail(b, d.Class())
}

func capDetail(b *limiter.Bucket) string {
	text := b.Service + " is capped"
	if b.Block {
		text = b.Service + " is blocked"
	}
	if b.Cap.Author != "" {
		text += " by " + clip(b.Cap.Author)
	}
	if b.Cap.Reason != "" {
		text += ": " + clip(b.Cap.Reason)
	}
	return text
}

// classDetail names the class of a request in b.
func classDetail(b *limiter.Bucket, class string) string {
	tier, retry := strings.CutSuffix(class, "/"+limiter.Retry)
	switch {
	case class == "":
		return ""
	case len(b.Tiers) > 0 && retry:
		return " for retries of tier " + tier
	case len(b.Tiers) > 0:
		return " for tier " + class
	case class == limiter.Retry:
		return " for retries"
	default:
		return " for first attempts"
	}
}

// clip cuts text that is too long, between two characters.
func clip(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + "…"
}
