mod buffered;
mod check;
mod hash;
mod hash_limits;
mod postings;
