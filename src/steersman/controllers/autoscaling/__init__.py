"""Controller of HorizontalPodAutoscalers (pkg/controller/podautoscaler)."""
