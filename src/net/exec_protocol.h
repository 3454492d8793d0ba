/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of an exec session, the same from the command line through the server (which relays
 * bytes and understands nothing) to the supervisor.
 *
 * A frame is one type byte, a 32-bit big-endian length, and that many bytes (at most
 * EXEC_FRAME_MAX). Client to task: IN (standard input; empty = end of input), RESIZE (two 16-bit
 * big-endian numbers: rows, columns), TERM (text: the kind of terminal, as in the variable), SIGNAL
 * (one byte). Task to client: OUT, ERR, EXIT (32-bit big-endian exit code, 128 + signal when
 * killed; always the last frame), FAIL (text: could not be run; last). With a terminal all output
 * is OUT.
 *
 * With a terminal the client sends RESIZE, then TERM, before anything else, and the command starts
 * when TERM has come, so that it never sees a terminal of another size or kind; a client that sends
 * input first, or nothing for a while, has it started as it is. The client closes when it has the
 * last frame; the task's side waits a moment for that, because data that crosses a close would take
 * the last frame with it.
 */
#ifndef ALLOT_NET_EXEC_PROTOCOL_H
#define ALLOT_NET_EXEC_PROTOCOL_H

#define EXEC_FRAME_MAX 65536
#define EXEC_HEADER_BYTES 5
#define EXEC_TERM_MAX 64 /* longer names of terminals are not taken */

enum exec_frame {
    EXEC_IN = 'i',
    EXEC_RESIZE = 'w',
    EXEC_TERM = 't',
    EXEC_SIGNAL = 's',
    EXEC_OUT = 'o',
    EXEC_ERR = 'e',
    EXEC_EXIT = 'x',
    EXEC_FAIL = 'f'
};

#endif
