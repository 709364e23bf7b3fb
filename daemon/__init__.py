"""The process: configuration, watching, walking, planning, the one worker, the schedule, the interfaces."""
