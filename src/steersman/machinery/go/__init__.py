"""Text handling of Go's standard library: strings, net/url, strconv.IsPrint, encoding/pem."""
