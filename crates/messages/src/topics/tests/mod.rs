//! Tests of topics.
