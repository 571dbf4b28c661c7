mod buffered;
mod hash;
mod postings;
