/* Passwords in addresses of servers (postgresql://me:secret@host/db): taken out before anybody prints them, and hidden in messages. */
#ifndef KI_REDACT_H
#define KI_REDACT_H

#include <stddef.h>

#include "base/error.h"

/* Hide the password of every address in a message, in place: "postgresql://me:***@host/db". Where an address ends is not known there; in
 * doubt more is hidden. So is what follows any "password=". */
void ki_redact(char *text);

/* kith_address_take_password (kith/text.h). The password is given back with ki_free. */
kith_status ki_address_take_password(char *address, char **ret_password, kith_error *err);

#endif
