package proxy

import (
	"log/slog"
	"net/http"
	"time"
)

// Server returns a server for the workload's traffic: HTTP/1.1 and HTTP/2,
// without TLS or, through ServeTLS, with it. Bodies and answers may take as
// long as they like, since streams do; headers may not. log receives what
// net/http complains about, at level debug, since any peer can cause it; nil:
// nobody.
func Server(h http.Handler, log *slog.Logger) *http.Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	config := pings()
	// Callers with one connection and many open streams must not queue here:
	// the usual 100 would make the 101st watch wait for ever.
	config.MaxConcurrentStreams = 1000
	return &http.Server{
		Handler:                      h,
		Protocols:                    &protocols,
		HTTP2:                        config,
		MaxHeaderBytes:               32 << 10,
		ReadHeaderTimeout:            10 * time.Second,
		IdleTimeout:                  120 * time.Second,
		DisableGeneralOptionsHandler: true, // OPTIONS * is the workload's
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
