"""Line framing and message streams that the server and upstream sides share."""
