websocket_paths = []
