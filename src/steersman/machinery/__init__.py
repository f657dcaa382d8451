"""Parts that every Kubernetes object needs: schemes, codecs, errors, selectors, patches, field paths."""
