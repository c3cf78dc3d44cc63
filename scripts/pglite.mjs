// A PostgreSQL server for tests where nobody may unpack Debian's: PGlite, which is PostgreSQL with pgvector compiled for
// WebAssembly, behind a port of the loopback. pglite.mjs PORT
//
// PGlite has one session. So one client is served at a time, the next waits two seconds and is then told that there are
// too many, and a client leaves a clean session behind. PGlite ends when COPY reads from a client; the rows are collected here and read from its /dev/blob.
import net from 'node:net'
import { PGlite } from '@electric-sql/pglite'
import { vector } from '@electric-sql/pglite-pgvector'

const db = await PGlite.create({ extensions: { vector } })
let busy = false
const PROTOCOL_3 = 196608

const message = (type, body) => {
    const head = Buffer.alloc(5)
    head.write(type, 0, 'latin1')
    head.writeInt32BE(body.length + 4, 1)
    return Buffer.concat([head, body])
}
const fatal = (code, text) => message('E', Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${text}\0\0`))
const failed = (e) =>
    message('E', Buffer.from(`SERROR\0VERROR\0C${e.code ?? 'XX000'}\0M${String(e.message).replaceAll('\0', '')}\0\0`))

// A message of the client from the front of its bytes; null: not all of it is there.
const first = (bytes, hasType) => {
    const at = hasType ? 1 : 0
    if (bytes.length < at + 4) return null
    const n = at + bytes.readInt32BE(at)
    return bytes.length < n ? null : bytes.subarray(0, n)
}

// The statement of a Parse message, if it is a COPY from the client.
const copyOf = (m) => {
    const at = m.indexOf(0, 5) + 1
    const sql = m.toString('utf8', at, m.indexOf(0, at))
    return /^\s*copy\s.*\sfrom\s+stdin\b/i.test(sql) ? sql : null
}

class Client {
    constructor(socket) {
        this.socket = socket
        this.bytes = Buffer.alloc(0)
        this.hasBegun = false
        this.status = 'I' // of the transaction
        this.batch = [] // until the client wants answers
        this.copy = null // { sql, rows, isOpen }
        this.work = Promise.resolve()
    }
    // Answers of PGlite, as they are; the last byte of a ReadyForQuery is the transaction's state.
    async ask(bytes) {
        const answer = Buffer.from(await db.execProtocolRaw(bytes))
        for (let at = 0; at + 5 <= answer.length; at += 1 + answer.readInt32BE(at + 1))
            if (answer[at] === 0x5a) this.status = String.fromCharCode(answer[at + 5])
        this.socket.write(answer)
    }
    async begin(m) {
        const code = m.readInt32BE(4)
        if (code === 80877103 || code === 80877104) return this.socket.write('N') // neither TLS nor GSSAPI
        if (code === 80877102) return this.socket.end() // a request to cancel
        await this.ask(m)
    }
    async take(m) {
        const type = String.fromCharCode(m[0])
        if (this.copy?.isOpen) return this.takeCopy(type, m)
        if (type === 'X') return this.socket.end()
        if (type === 'P' && copyOf(m)) this.copy = { sql: copyOf(m), rows: [], isOpen: false }
        this.batch.push(m)
        if (!'QSHF'.includes(type)) return
        const bytes = Buffer.concat(this.batch)
        this.batch = []
        if (!this.copy) return this.ask(bytes)
        this.copy.isOpen = true
        const n = this.copy.sql.match(/\(([^)]*)\)/)[1].split(',').length
        const body = Buffer.alloc(3 + 2 * n)
        body[0] = 1
        body.writeInt16BE(n, 1)
        for (let i = 0; i < n; i++) body.writeInt16BE(1, 3 + 2 * i)
        const empty = Buffer.alloc(0)
        this.socket.write(Buffer.concat([message('1', empty), message('2', empty), message('n', empty), message('G', body)]))
    }
    async takeCopy(type, m) {
        const copy = this.copy
        if (type === 'd') return copy.rows.push(m.subarray(5))
        if (type === 'c' || type === 'f') {
            try {
                if (type === 'f') throw Object.assign(new Error('COPY from stdin failed: ' + m.toString('utf8', 5)), { code: '57014' })
                const sql = copy.sql.replace(/from\s+stdin/i, "from '/dev/blob'")
                const done = await db.query(sql, [], { blob: new Blob(copy.rows) })
                this.socket.write(message('C', Buffer.from(`COPY ${done.affectedRows ?? 0}\0`)))
            } catch (e) {
                if (this.status === 'T') this.status = 'E'
                this.socket.write(failed(e))
            }
            copy.rows = []
            return
        }
        if (type !== 'S') return
        this.copy = null
        await this.ask(m)
    }
    add(bytes) {
        this.bytes = Buffer.concat([this.bytes, bytes])
        for (let m; (m = first(this.bytes, this.hasBegun)); ) {
            this.bytes = this.bytes.subarray(m.length)
            const copy = Buffer.from(m)
            const isStart = !this.hasBegun
            if (isStart && m.readInt32BE(4) === PROTOCOL_3) this.hasBegun = true
            this.work = this.work
                .then(() => (isStart ? this.begin(copy) : this.take(copy)))
                .catch((e) => this.socket.end(fatal('XX000', String(e.message))))
        }
    }
    async leave() {
        await this.work
        await db.exec('rollback').catch(() => {})
        await db.exec('discard all').catch(() => {})
        busy = false
        admit()
    }
}

// Clients that wait for the one before to leave; not for long, because it may be waiting for them.
const waiting = []
const PATIENCE_MS = 2000

const admit = () => {
    if (busy || waiting.length === 0) return
    const { socket, timer, early } = waiting.shift()
    clearTimeout(timer)
    busy = true
    const client = new Client(socket)
    socket.removeAllListeners('data')
    socket.on('data', (bytes) => client.add(bytes))
    if (socket.destroyed) return void client.leave()
    socket.on('close', () => client.leave())
    early.forEach((bytes) => client.add(bytes))
}

const server = net.createServer((socket) => {
    const place = { socket, early: [] }
    socket.on('error', () => {})
    socket.on('data', (bytes) => place.early.push(bytes))
    place.timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(place), 1)
        socket.end(fatal('53300', 'PGlite serves one client at a time'))
    }, PATIENCE_MS)
    waiting.push(place)
    admit()
})
server.listen(Number(process.argv[2]), '127.0.0.1', () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(0))
