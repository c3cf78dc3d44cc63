#!/bin/sh
# Certificates of a test's own for 127.0.0.1, in the current folder: certificates.sh
#
# ca.pem is an authority. It signed good.pem, elsewhere.pem (of another host) and old.pem (no longer valid); their keys are *.key. other.pem is
# an authority that signed nothing.
set -eu
cat >certificates.cnf <<END
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[good]
subjectAltName = IP:127.0.0.1
[old]
subjectAltName = IP:127.0.0.1
[elsewhere]
subjectAltName = DNS:elsewhere.test
END
new_key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
for name in ca other; do
    # shellcheck disable=SC2086
    openssl req -config certificates.cnf -x509 -extensions authority $new_key -keyout $name.key -out $name.pem -days 2 -subj "/CN=$name"
done
for name in good elsewhere old; do
    days=2
    [ $name != old ] || days=0
    # shellcheck disable=SC2086
    openssl req -config certificates.cnf -new $new_key -keyout $name.key -out request.pem -subj "/CN=$name"
    openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days $days -extfile certificates.cnf -extensions $name -out $name.pem
done
