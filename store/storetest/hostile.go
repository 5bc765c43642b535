package storetest

import (
	"fmt"
	"strings"
)

// hostile are names that break who prints, parses or measures them carelessly.
var hostile = []string{
	`<script>alert(1)</script>`, `</script><script>alert(1)</script>`, `"><script>alert(1)</script>`, `'><script>alert(1)</script>`,
	`<img src=x onerror=alert(1)>`, `"><img src=x onerror=alert(1)>`, `<svg onload=alert(1)>`, `<svg/onload=alert(1)//`, `<body onload=alert(1)>`,
	`<iframe src="javascript:alert(1)">`, `<a href="javascript:alert(1)">x</a>`, `<math><mi xlink:href="javascript:alert(1)">`,
	`<style>*{display:none}</style>`, `<link rel=stylesheet href=//evil.example>`, `<meta http-equiv=refresh content=0;url=//evil.example>`,
	`<base href=//evil.example>`, `<form action=//evil.example><input name=q>`, `<template><script>alert(1)</script>`, `<!--`, `-->`, `<![CDATA[`, `]]>`,
	`<plaintext>`, `<table>`, `</table>`, `</td></tr></table>`, `</bdi>`, `</svg>`, `</title>`, `<details open ontoggle=alert(1)>`,
	`" onmouseover="alert(1)`, `' onmouseover='alert(1)`, `" autofocus onfocus=alert(1) x="`, `" hx-get="/caps" hx-trigger="load`,
	`" hx-on:load="alert(1)`, `x" style="position:fixed;inset:0`, "` onmouseover=alert(1)", `&lt;script&gt;`, `&#60;script&#62;`, `&amp;`, `&`, `&&`, `&copy`,
	`javascript:alert(1)`, `JaVaScRiPt:alert(1)`, `data:text/html,<script>alert(1)</script>`, `vbscript:msgbox`, `//evil.example`, `https://evil.example`,
	`../../../etc/passwd`, `..%2f..%2fetc%2fpasswd`, `%00`, `%0d%0aSet-Cookie: a=b`, `?name=x&name=y`, `#fragment`, `a/b/c`, `a//b`, `/`, `.`, `..`, `-`, `--help`, `-1`,
	`{{.}}`, `{{ 7*7 }}`, `${7*7}`, `#{7*7}`, `<%= 7*7 %>`, `{ ...children }`, `@templ`, `%s%s%s%n`, `%!d(string=x)`, `\u003cscript\u003e`, `\x3cscript\x3e`, `\`, `\\`, `\n`,
	`'; DROP TABLE cells; --`, `" OR 1=1 --`, `' UNION SELECT 1 --`, `);`, `$(reboot)`, "`reboot`", `; rm -rf /`, `| cat`, `> /dev/null`, `!!`, `*`, `?`, `[a-z]`, `^$`, `.*`, `(a+)+$`,
	`null`, `undefined`, `NaN`, `Infinity`, `true`, `false`, `constructor`, `__proto__`, `toString`, `0`, `-0`, `1e999`, `0x10`, `07`, `_unknown `, ` _other`, `CON`, `nul.txt`,
	"\u202egnp.exe", "\u202dabc", "\u2066abc\u2069", "\u200babc", "a\u200db", "\ufeffabc", "a\u00adb", "\u2028", "\u2029", "a\u00a0b", "\u0085", "\u061cabc",
	"\x00", "a\x00b", "\x01\x02", "\x1b[31mred", "\x1b]0;title\a", "\r\n", "a\nb", "\t", "\v\f", "\x7f", " ", "   ", " a", "a ",
	"e\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301", strings.Repeat("\u0334", 60), "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d", "ﷺ", "𒐫", "😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "مرحبا", "שלום", "ทดสอบ", "测试", "𝕳𝖊𝖑𝖑𝖔",
	"раураl", "аdmin", "\u0131", "ß", "ﬁ", "Ω", "İ", "\U0010ffff", "\ufffd", "\ufffe", "\ue000",
	`checkout "gold"`, `Bobby Tables`, `O'Brien`, `a,b;c`, `key: value`, `- item`, `&anchor`, `*alias`, `!!binary x`, `|`, `>`, `%YAML`, `"`, `'`, "`",
}

// Hostile returns 200 different names, of valid UTF-8 and at most 256 bytes, that
// strangers may choose for a caller: with markup, addresses, templates, control
// characters, turned writing, and as long as they may be.
func Hostile() []string {
	const count = 200
	names := append([]string{
		strings.Repeat("W", 256), strings.Repeat("i", 256), strings.Repeat("long-", 51), strings.Repeat("a.", 128), strings.Repeat("<b>", 85),
		strings.Repeat("w/", 120), strings.Repeat("超", 85), strings.Repeat("\u202e", 85),
	}, hostile...)
	for i := len(names); i < count; i++ {
		names = append(names, fmt.Sprintf(`"><script>alert(%d)</script>`, i))
	}
	return names[:count]
}
