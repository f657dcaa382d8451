"""When something is to happen again and again: crontab(5) as CronJobs have it."""
