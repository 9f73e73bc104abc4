// Debian's Chromium without a window, driven by playwright.
import fs from 'node:fs';
import {chromium} from 'playwright-core';

export async function launch() {
  const executablePath = '/usr/bin/chromium';
  if (!fs.existsSync(executablePath)) throw new Error(`no ${executablePath}: scripts/setup --web installs it`);
  return chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']});
}
