"""Template functions of sprig (Masterminds/sprig v3), which kwok adds to Go's own."""
