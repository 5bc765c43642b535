package desk

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/proto/wire"
)

// Bounds on what is handed in.
const (
	maxReasonBytes   = 1 << 10
	maxFileNameBytes = 1 << 10
	maxFiles         = 100_000
	maxProblems      = 1_000 // told of one change
	// maxMessage is the most bytes of a configuration as a message. What is left
	// of wire.MaxDown is for caps and for what else a message says.
	maxMessage = wire.MaxDown - 2<<20
)

// checkReason reports what is wrong with a reason, "" if nothing is.
func checkReason(reason string) string {
	switch {
	case len(reason) > maxReasonBytes:
		return fmt.Sprintf("has %d bytes, at most %d", len(reason), maxReasonBytes)
	default:
		return checkText(reason)
	}
}

func checkText(s string) string {
	switch {
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.ContainsFunc(s, misleads):
		return "has a control character"
	default:
		return ""
	}
}

// misleads reports whether a character is one for terminals, begins a line, or
// shows what follows in another order than it is in: who reads an audit must
// read what was written.
func misleads(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// Shown returns a text that others wrote as one that may be shown and kept: at
// most so many bytes, and without what misleads.
func Shown(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if misleads(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
	for len(text) > most {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// checkFiles bounds the files before they are read.
func checkFiles(files []limitsfile.Source) error {
	if len(files) == 0 {
		return invalid("files", "there are none; to remove all limits of a service, apply a file with the service and no buckets")
	}
	if len(files) > maxFiles {
		return invalid("files", "%d files, at most %d", len(files), maxFiles)
	}
	total := 0
	for i, f := range files {
		if what := checkFileName(f.Name); what != "" {
			return invalid(fmt.Sprintf("files[%d].name", i), "%s", what)
		}
		if total += len(f.Data); total > limitsfile.MaxTotalBytes {
			return invalid("files", "more than %d MiB in all", limitsfile.MaxTotalBytes>>20)
		}
	}
	return nil
}

// checkFileName reports what is wrong with the name of a file, "" if nothing is.
func checkFileName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case len(name) > maxFileNameBytes:
		return fmt.Sprintf("has %d bytes, at most %d", len(name), maxFileNameBytes)
	default:
		return checkText(name)
	}
}

// messageSize returns how many bytes a service takes in a configuration.
func messageSize(s *limiter.Service) int {
	return proto.Size(wire.FromConfiguration(&limiter.Configuration{Services: []limiter.Service{*s}}))
}

// checkReceivable checks what a receiver will check, so that nothing is saved
// that they refuse.
func (s *snapshot) checkReceivable(changed []string) error {
	config := limiter.Configuration{}
	for _, name := range changed {
		if d := s.documents[name]; d != nil {
			config.Services = append(config.Services, *d.service)
		}
	}
	if err := config.Validate(); err != nil {
		out := &InvalidError{}
		for line := range strings.Lines(err.Error()) {
			out.Problems = append(out.Problems, Problem{Where: "files", Text: strings.TrimSuffix(line, "\n")})
		}
		out.Problems = out.Problems[:min(len(out.Problems), maxProblems)]
		return out
	}
	buckets, bytes := 0, 0
	for _, d := range s.documents {
		buckets += len(d.service.Buckets)
		bytes += d.size
	}
	if buckets > limitsfile.MaxBuckets {
		return invalid("files", "%d buckets with those that are there, at most %d", buckets, limitsfile.MaxBuckets)
	}
	if bytes > maxMessage {
		return invalid("files", "limits of %d bytes as a message, at most %d: no node would take them", bytes, maxMessage)
	}
	return nil
}

// capProblems turns the errors of the file that stands for a cap into problems
// of the cap's fields.
func capProblems(err error) []Problem {
	var errs limitsfile.Errors
	errors.As(err, &errs)
	var problems []Problem
	for _, e := range errs {
		bare := *e
		bare.File, bare.Line, bare.Column, bare.Key = "", 0, 0, ""
		where := ""
		if i := strings.LastIndexByte(e.Key, '.'); i >= 0 { // else the bucket as a whole
			where = e.Key[i+1:]
		}
		problems = append(problems, Problem{Where: where, Text: strings.TrimPrefix(bare.Error(), `"cap" `)})
	}
	return problems
}
