"""Cron schedules, as crontab(5) and CronJobs have them."""
