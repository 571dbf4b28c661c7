//! Tests of queues.

mod bounds;
mod complexity;
mod damage;
mod model;
mod random;
mod recovery;
mod rules;
mod table;
