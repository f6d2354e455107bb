// Aedes on one loopback port.  Started by __init__.py with one argument, a JSON object:
// { modules, host, port }.
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const { modules, host, port } = JSON.parse(process.argv[2])

// The package is not beside this file: set-up puts it where `modules` says.
const { resolve } = createRequire(join(modules, 'package.json'))
const { Aedes } = await import(pathToFileURL(resolve('aedes')))

const broker = await Aedes.createBroker()
for (const event of ['clientError', 'connectionError']) {
  broker.on(event, (client, error) => console.error(event, client?.id, error.message))
}
createServer(broker.handle).listen(port, host)
process.on('SIGTERM', () => process.exit(0))
