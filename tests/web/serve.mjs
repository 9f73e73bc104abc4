// Files on a port of the loopback interface, for programs that open nothing else.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const types = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.wasm': 'application/wasm'};

// fileOf: from the path of a request to that of a file.
export async function serve(fileOf) {
  const server = http.createServer((request, response) => {
    const file = fileOf(decodeURIComponent(new URL(request.url, 'http://x').pathname));
    if (!fs.existsSync(file) || !fs.statSync(file).isFile()) return response.writeHead(404).end();
    response.writeHead(200, {'content-type': types[path.extname(file)] ?? 'application/octet-stream'});
    fs.createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {url: `http://127.0.0.1:${server.address().port}`, close: () => server.close()};
}
