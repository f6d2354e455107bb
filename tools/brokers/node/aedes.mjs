// Aedes on one loopback port, its state in a LevelDB folder.  Started by aedes.py with
// one argument, a JSON object: { modules, host, port, database, options }.
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'

const SETTLE_MS = 300

const { modules, host, port, database, options } = JSON.parse(process.argv[2])

// The packages are not beside this file: set-up puts them where `modules` says.
const { resolve } = createRequire(join(modules, 'package.json'))
const load = async (name) => import(pathToFileURL(resolve(name)))

const { Aedes } = await load('aedes')
const { ClassicLevel } = await load('classic-level')
const { default: persistence } = await load('aedes-persistence-level')

const store = persistence(new ClassicLevel(database))
const broker = await Aedes.createBroker({ persistence: store, ...options })
for (const event of ['clientError', 'connectionError']) {
  broker.on(event, (client, error) => console.error(event, client?.id, error.message))
}
const connections = new Set()
const server = createServer((connection) => {
  connections.add(connection)
  broker.handle(connection)
})
server.listen(port, host)

// close() drops what is in the works, so that has to end first: nothing more comes in,
// and what has come gets the time to be written down.
process.on('SIGTERM', async () => {
  server.close()
  for (const connection of connections) connection.destroy()
  await setTimeout(SETTLE_MS)
  broker.close(() => process.exit(0))
})
