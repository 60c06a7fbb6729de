"""What the tests of exported tables share."""
