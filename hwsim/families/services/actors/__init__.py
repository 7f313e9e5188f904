"""Services under load, played: requests that wait in lines and at stations, on a calendar of their own."""
