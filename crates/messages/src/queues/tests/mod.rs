//! Tests of queues.

mod damage;
mod model;
mod random;
mod rates;
mod recovery;
mod rules;
mod table;
