//! Tests of queues.

mod model;
mod random;
mod rates;

mod table;
