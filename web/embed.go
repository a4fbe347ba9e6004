// Package web holds the built web application. It owns nothing but the embedded files: how they are served
// is the edge's business. Before the first web build the folder holds only a placeholder, so that the
// server builds without Node.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Dist is the content of web/dist: landing.html (for / and /home), index.html (every other page path),
// hashed files under assets/ and, beside each text file, its precompressed .br and .gz forms.
// It is empty but for .keep when the web application has not been built.
var Dist, _ = fs.Sub(dist, "dist") // fs.Sub fails on a malformed name only
