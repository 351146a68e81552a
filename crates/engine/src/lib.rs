//! The built-in engine's faces: pcm-json WebSocket, /metrics, /health and a per-connection balancer.
