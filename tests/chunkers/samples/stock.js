#!/usr/bin/env node
'use strict'

const { EventEmitter } = require('node:events')
const fs = require('node:fs')

// How long a count may lie in the cache.
const MAX_AGE_MS = 60_000
const UNITS = ['piece', 'box', 'pallet']

/**
 * A shelf holds one article.
 * @param {string} article
 */
class Shelf extends EventEmitter {
  #count = 0

  static parse (line) {
    const [article, count] = line.split(';')
    return new Shelf(article, Number(count))
  }

  constructor (article, count = 0) {
    super()
    this.article = article
    this.#count = count
  }

  get count () { return this.#count }

  /** Take some pieces away; emits `low` when few are left. */
  take (pieces) {
    if (pieces > this.#count) {
      throw new RangeError(`only ${this.#count} of ${this.article} are left`)
    }
    this.#count -= pieces
    if (this.#count < 5) {
      this.emit('low', this.article)
    }
    return this.#count
  }
}

const byArticle = (shelves) => new Map(shelves.map((shelf) => [shelf.article, shelf]))

async function load (path) {
  const text = await fs.promises.readFile(path, 'utf8')
  return text.split('\n').filter(Boolean).map(Shelf.parse)
}

function report (shelves, { unit = UNITS[0], sort = true } = {}) {
  const rows = []
  for (const shelf of shelves) {
    if (shelf.count === 0) {
      continue
    }
    rows.push({
      article: shelf.article,
      count: shelf.count,
      unit,
      note: shelf.count < 5 ? 'low' : ''
    })
  }
  if (sort) {
    rows.sort((a, b) => a.article.localeCompare(b.article))
  }
  const widths = rows.reduce((most, row) => Math.max(most, row.article.length), 0)
  for (const row of rows) {
    const name = row.article.padEnd(widths)
    switch (row.note) {
      case 'low':
        console.warn(`${name} ${row.count} ${row.unit} (order more)`)
        break
      default:
        console.log(`${name} ${row.count} ${row.unit}`)
    }
  }
  return rows
}

Shelf.prototype.isEmpty = function () {
  return this.count === 0
}

module.exports = {
  Shelf,
  load,
  report,
  total (shelves) {
    return shelves.reduce((sum, shelf) => sum + shelf.count, 0)
  },
  byArticle
}

if (require.main === module) {
  load(process.argv[2]).then((shelves) => report(shelves)).catch((error) => {
    console.error(error)
    process.exitCode = 1
  })
}
