-- What an agent moved so far, bytes and files together: a restore or a last
-- sync of many terabytes goes on although its percentage stands still.
alter table pod add column progress_moved bigint not null default 0;
