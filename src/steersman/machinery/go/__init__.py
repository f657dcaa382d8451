"""Text as Go's standard library takes it: strings, net/url, strconv.IsPrint, encoding/pem."""
