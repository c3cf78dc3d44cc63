#!/usr/bin/env python3
"""TLS in front of servers on loopback that speak plain HTTP: tls_front.py PARENT {CERTIFICATE:KEY:PORT}…

For each triple it listens on a free port of 127.0.0.1, and passes each request there on to PORT, one request for each connection. Prints
the ports it listens on in one line. Ends when the process PARENT is no longer its parent.
"""

import os
import socket
import ssl
import sys
import threading
import time


def serve_one(plain: socket.socket, context: ssl.SSLContext, port: int) -> None:
    """Clients that refuse the certificate end the handshake: nothing to be done here."""
    try:
        with context.wrap_socket(plain, server_side=True) as client, socket.create_connection(("127.0.0.1", port)) as server:
            request = b""
            while b"\r\n\r\n" not in request:
                part = client.recv(65536)
                if not part:
                    return
                request += part
            server.sendall(request)
            while part := server.recv(65536):
                client.sendall(part)
            client.unwrap()
    except OSError:
        plain.close()


def listen(certificate: str, key: str, port: int) -> int:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            plain, _ = listener.accept()
            plain.settimeout(60)
            threading.Thread(target=serve_one, args=(plain, context, port), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def main() -> None:
    parent = int(sys.argv[1])
    ports = [listen(certificate, key, int(port)) for certificate, key, port in (word.split(":") for word in sys.argv[2:])]
    print(*ports, flush=True)
    while os.getppid() == parent:
        time.sleep(0.2)


if __name__ == "__main__":
    main()
