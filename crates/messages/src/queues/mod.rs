//! Queues of jobs.
